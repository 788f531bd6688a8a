-- Runs a batch: all operations of one tick of the event loop on one shard, in order.
--
-- scripts.ts joins the files, this one last, so what is not defined here comes from those before it: `wall` from time.lua;
-- `operations`, `at_end`, `values`, `checked_at`, `meter_count` and METERS_FROM from clock.lua; `answers`, `batches`, `has_used`,
-- `shard_epoch` and `write_batches` from epoch.lua. Each operation's file adds a function to `operations`, under its letter's code.
-- The function gets the number of its first key, and returns that of the next operation's.
-- In the lines below, a number after a field is its size in bytes.
-- KEYS     shard epoch | the Redis process of that epoch, and when it was last checked | number of batches and the epoch |
--          meters, two first proofs first (meters.lua) | then the keys of each operation
-- ARGV     clock, see time.lua | next epoch 4, time of the last check of the process 4 or NONE, expected time 4 or NONE and the
--          epoch of the reply that it comes from 4, see epoch.lua, highest number of batches that the caller was ever answered 8,
--          number of meters 2, numbers of the pricing 8 each | then each operation: its letter and its fields, big endian
-- returns  one string: | shard epoch 4 | time of the last check 3 | time 8 | number of batches 8 |
--          then for each operation | status 1 | 3 | 4 |
--          then each meter 20, with the proofs of this batch; zeros if there is none |
--          One string, because a client decodes a list integer by integer.
local keys = METERS_FROM + meter_count + 1
for index = 3, #ARGV do
  keys = operations[string.byte(ARGV[index])](keys, ARGV[index])
end
for _, finish in pairs(at_end) do finish() end
if has_used then write_batches(batches + 1) end -- so that a backup that was put back is noticed
local last, none = METERS_FROM + meter_count, string.rep('\0', 20)
for number = METERS_FROM + 1, last do values[number] = values[number] or none end
return pack('>I4I3dd' .. string.rep('BI3I4', #ARGV - 2), shard_epoch, checked_at, wall, batches, unpack(answers))
  .. table.concat(values, '', METERS_FROM + 1, last)
