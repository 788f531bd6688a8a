-- F: refunds a caller's charge, after the API key's window on another shard refused the request.
-- KEYS     caller window
-- ARGV     | 'F' | time of charge 3, from R | caller limit 3 |
-- returns  1, 0, 0
-- From clock.lua: unpack_bytes, operations, answer
-- From windows.lua: refund
operations[70] = function(keys, operation) -- 'F'
  local charged_at, limit = unpack_bytes('>I3I3', operation, 2)
  refund(KEYS[keys], charged_at, limit)
  answer(1, 0, 0)
  return keys + 1
end
