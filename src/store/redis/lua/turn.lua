-- Runs every operation of one event-loop turn on one shard, in order. The operations' files come before this one.
-- KEYS     shard epoch | the process for which it holds, and when it was last looked at | then the keys of each operation
-- ARGV     clock | new epoch | time of the last look at the process, from the last reply, or '' (see answers.lua) |
--          what time it is by that and by the caller's own clock since then, or '' |
--          then each operation: its letter and its fields, big endian
-- returns  one string: | shard epoch 4 | time of the last look 3 | then for each operation | status 1 | 3 | 3 |
--          One string, because a client decodes a list integer by integer.
local keys = 3
for index = 5, #ARGV do
  keys = operations[string.byte(ARGV[index])](keys, ARGV[index])
end
for _, window in pairs(windows) do write_window(window) end
return pack('>I4I3' .. string.rep('BI3I3', #ARGV - 4), shard_epoch, looked_at, unpack(answers))
