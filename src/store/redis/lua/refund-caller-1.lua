-- F: takes back a caller's charge, where the API key's window lives on another shard and refused.
-- KEYS     caller window
-- ARGV     | 'F' | time of charge 3, from R |
-- returns  1, 0, 0
operations[70] = function(keys, operation)
  refund(KEYS[keys], (unpack_bytes('>I3', operation, 2)))
  answer(1, 0, 0)
  return keys + 1
end
