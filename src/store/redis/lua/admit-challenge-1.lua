-- C: charges one challenge to an address.
-- KEYS     address log
-- ARGV     | 'C' | site tag 3 | address limit 3 | site limit 3 (0: the site is not known) |
-- returns  1, site count, accepted proofs * 65536 + failures (each at most 65535)  |  0, milliseconds to wait, policy
operations[67] = function(keys, operation) -- 'C'
  local tag, address_limit, site_limit = unpack_bytes('>I3I3I3', operation, 2)
  local admitted, first, second, _, accepted = admit_to_log(keys, 0, tag, address_limit, site_limit, 0)
  if not admitted then
    answer(0, first, second)
  else
    if accepted > 65535 then accepted = 65535 end
    if second > 65535 then second = 65535 end
    answer(1, first, accepted * 65536 + second)
  end
  return keys + 1
end
