-- C: charges one challenge to an address.
-- KEYS     address log
-- ARGV     | 'C' | site tag 3 | address limit 3 | site limit 3 (0: the site is not known) |
-- returns  1, site count, accepted proofs * 65536 + failures (each at most 65535)  |  0, milliseconds to wait, policy
-- From shared.lua: unpack_bytes, operations, answer
-- From address-log.lua: admit_to_log
operations[67] = function(next_key, operation) -- 'C'
  local tag, address_limit, site_limit = unpack_bytes('>I3I3I3', operation, 2)
  local kind, keep = 0, 0 -- a challenge, without a nonce to record
  -- An admitted request has the site count in `first`, failures in `second`; a refused one the milliseconds to wait, and the policy.
  local admitted, first, second, _, accepted = admit_to_log(next_key, kind, tag, address_limit, site_limit, keep)
  if admitted then second = math.min(accepted, 65535) * 65536 + math.min(second, 65535) end
  answer(admitted and 1 or 0, first, second)
  return next_key + 1
end
