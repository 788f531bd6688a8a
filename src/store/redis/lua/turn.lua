-- Runs all operations of one event-loop turn on one shard, in order. The operations' files come before this one.
-- KEYS     shard epoch | the Redis process of that epoch, and when it was last checked | number of turns and the epoch |
--          meters, that of all traffic first | then the keys of each operation
-- ARGV     clock | new epoch | time of the last check of the process, from the last reply, or '' (see epoch.lua) |
--          expected time: that time plus what has passed since by the caller's clock, and the reply's epoch, or '' |
--          highest number of turns that the caller was ever answered | number of meters | number of shards |
--          then each operation: its letter and its fields, big endian
-- returns  one string: | shard epoch 4 | time of the last check 3 | time 8 | number of turns 8 |
--          then for each operation | status 1 | 3 | 3 |
--          then each meter 24, with the proofs of this turn; zeros if there is none |
--          One string, because a client decodes a list integer by integer.
local keys = METERS_FROM + meter_count + 1
for index = 8, #ARGV do
  keys = operations[string.byte(ARGV[index])](keys, ARGV[index])
end
for _, window in pairs(windows) do write_window(window) end
note_use()
return pack('>I4I3dd' .. string.rep('BI3I3', #ARGV - 7), shard_epoch, checked_at, wall, turns, unpack(answers)) .. save_meters()
