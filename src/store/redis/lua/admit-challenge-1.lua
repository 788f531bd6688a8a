-- C: charges one challenge to an address.
-- KEYS     address log
-- ARGV     | 'C' | site tag 3 | address limit 3 | site limit 3 (0: the site is not known) |
-- returns  1, site count, accepted proofs * 65536 + failures (each at most 65535)  |  0, milliseconds to wait, policy
local function admit_challenge(keys, operation)
  local tag, address_limit, site_limit = unpack_bytes('>I3I3I3', operation, 2)
  local admitted, first, second, _, accepted = admit_to_log(keys, 0, tag, address_limit, site_limit, 0)
  if admitted then answer(1, first, math.min(accepted, 65535) * 65536 + math.min(second, 65535)) else answer(0, first, second) end
  return keys + 1
end
