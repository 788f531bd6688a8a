-- F: refunds the charge of a caller (a backend), after another shard refused the request by its API key, or found its token to be junk.
-- KEYS     caller window
-- ARGV     | 'F' | time of charge 3, as redeem-token-3.lua answered it | caller limit 3 |
-- returns  1 (done), 0, 0
-- From shared.lua: unpack_bytes, operations, answer
-- From windows.lua: refund
operations[70] = function(next_key, operation) -- 'F'
  local charged_at, limit = unpack_bytes('>I3I3', operation, 2)
  refund(KEYS[next_key], charged_at, limit)
  answer(1, 0, 0)
  return next_key + 1
end
