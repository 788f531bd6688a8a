-- C: charges one challenge to an address.
-- KEYS     address log
-- ARGV     | 'C' | site tag 3 | address limit 3 | site limit 3 (0: the site is not known) |
-- returns  1, site count, failures  |  0, milliseconds to wait, policy
operations[67] = function(keys, operation)
  local tag, address_limit, site_limit = unpack_bytes('>I3I3I3', operation, 2)
  local admitted, first, second = admit_to_log(KEYS[keys], 0, tag, address_limit, site_limit, 0)
  answer(admitted and 1 or 0, first, second)
  return keys + 1
end
