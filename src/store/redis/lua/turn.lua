-- Runs every operation of one event-loop turn on one shard, in order. The operations' files come before this one.
-- KEYS     shard epoch, then the keys of each operation
-- ARGV     clock | new epoch | then each operation: its letter and its fields, big endian
-- returns  one string: | shard epoch 4 | then for each operation | status 1 | 3 | 3 |
--          One string, because a client decodes a list integer by integer.
local keys = 2
for index = 3, #ARGV do
  keys = operations[string.byte(ARGV[index])](keys, ARGV[index])
end
for _, window in pairs(windows) do write_window(window) end
return pack('>I4' .. string.rep('BI3I3', #ARGV - 2), shard_epoch, unpack(answers))
