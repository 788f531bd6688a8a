-- Runs every operation of one event-loop turn on one shard, in order. The operations' files come before this one.
-- KEYS     shard epoch | the Redis process of that epoch, and when it was last checked | then the keys of each operation
-- ARGV     clock | new epoch | time of the last check of the process, from the last reply, or '' (see answers.lua) |
--          expected time: that time plus what has passed since by the caller's clock, and the reply's epoch, or '' |
--          then each operation: its letter and its fields, big endian
-- returns  one string: | shard epoch 4 | time of the last check 3 | then for each operation | status 1 | 3 | 3 |
--          One string, because a client decodes a list integer by integer.
local keys = 3
for index = 5, #ARGV do
  keys = operations[string.byte(ARGV[index])](keys, ARGV[index])
end
for _, window in pairs(windows) do write_window(window) end
return pack('>I4I3' .. string.rep('BI3I3', #ARGV - 4), shard_epoch, checked_at, unpack(answers))
