-- K: how long an API key would have to wait, without charging it: asked where its caller, on another shard, was refused.
-- KEYS     API key window
-- ARGV     API key limit
-- returns  0, milliseconds to wait (0: none), 3 (policy API key), 0
operations.K = function(keys, args)
  answer(0, read_window(KEYS[keys], tonumber(ARGV[args])).wait, 3, 0)
  return keys + 1, args + 1
end
