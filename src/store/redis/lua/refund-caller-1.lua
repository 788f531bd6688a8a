-- F: takes back a caller's charge, where the API key's window lives on another shard and refused.
-- KEYS     caller window
-- ARGV     | 'F' | time of charge 3, from R | caller limit 3 |
-- returns  1, 0, 0
operations[70] = function(keys, operation)
  local charged_at, limit = unpack_bytes('>I3I3', operation, 2)
  refund(KEYS[keys], charged_at, limit)
  answer(1, 0, 0)
  return keys + 1
end
