-- K: how long a request with an API key would have to wait. Charges nothing. Called after another shard refused the caller.
-- KEYS     API key window
-- ARGV     | 'K' | API key limit 3 |
-- returns  0, milliseconds to wait (0: none), 3 (policy API key)
-- From clock.lua: unpack_bytes, operations, answer
-- From windows.lua: window_of, wait_of
operations[75] = function(keys, operation) -- 'K'
  answer(0, wait_of(window_of(keys), (unpack_bytes('>I3', operation, 2))), 3)
  return keys + 1
end
