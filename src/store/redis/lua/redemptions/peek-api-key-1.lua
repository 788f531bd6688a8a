-- K: how long a request with an API key would have to wait. Charges nothing. Asked after another shard refused the caller, for Retry-After.
-- KEYS     API key window
-- ARGV     | 'K' | API key limit 3 |
-- returns  0 as any refusal, milliseconds to wait (0: none), policy (API_KEY)
-- From shared.lua: unpack_bytes, API_KEY, operations, answer
-- From windows.lua: window_of, wait_of
operations[75] = function(next_key, operation) -- 'K'
  answer(0, wait_of(window_of(next_key), (unpack_bytes('>I3', operation, 2))), API_KEY)
  return next_key + 1
end
