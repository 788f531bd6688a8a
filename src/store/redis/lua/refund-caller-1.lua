-- F: takes back a caller's charge, where the API key's window lives on another shard and refused.
-- KEYS     caller window
-- ARGV     time of charge, from R
-- returns  1, 0, 0, 0
operations.F = function(keys, args)
  refund_window(KEYS[keys], tonumber(ARGV[args]))
  answer(1, 0, 0, 0)
  return keys + 1, args + 1
end
