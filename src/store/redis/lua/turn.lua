-- Runs every operation of one event-loop turn on one shard, in order. The operations' files come before this one.
-- KEYS     shard epoch, then the keys of each operation
-- ARGV     clock | new epoch | then for each operation its letter and arguments
-- returns  shard epoch, then four integers for each operation
local next_key, next_arg = 2, 3
while next_arg <= #ARGV do
  next_key, next_arg = operations[ARGV[next_arg]](next_key, next_arg + 1)
end
return answers
