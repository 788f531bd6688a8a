-- Runs a batch: all operations of one tick of the event loop on one shard, in order. scripts.ts puts this file last.
--
-- KEYS     shard epoch | note of the server and its time | number of batches and the epoch (epoch.lua has these three) |
--          meters, in the order of SITE_METER in store/wire.ts | then the keys of each operation
-- ARGV     clock, see time.lua | head | then each operation: its letter and its fields
-- returns  one string, because a client decodes a list integer by integer. store/wire.ts has its form, and the head's. The meters in it
--          are those after the whole batch; zeros stand for one that is not there.
-- From time.lua: wall
-- From shared.lua: pack, checked_at, meter_count, values, EPOCH_KEYS, operations, at_end, answers, has_used
-- From epoch.lua: batches, write_batches, shard_epoch
local METER_BYTES = 20 -- domain/meters.ts

local next_key = EPOCH_KEYS + meter_count + 1
for index = 3, #ARGV do
  next_key = operations[string.byte(ARGV[index])](next_key, ARGV[index])
end
for _, finish in pairs(at_end) do finish() end -- writes what the operations have counted
if has_used then write_batches(batches + 1) end -- a nonce was spent or a token redeemed: sets `batches`; epoch.lua says why
local last, none = EPOCH_KEYS + meter_count, string.rep('\0', METER_BYTES)
for number = EPOCH_KEYS + 1, last do values[number] = values[number] or none end
return pack('>I4I3dd' .. string.rep('BI3I4', #ARGV - 2), shard_epoch, checked_at, wall, batches, unpack(answers))
  .. table.concat(values, '', EPOCH_KEYS + 1, last)
