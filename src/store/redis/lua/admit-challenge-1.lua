-- C: charges one challenge to an address.
-- KEYS     address log
-- ARGV     site tag | address limit | site limit (0: the site is not known)
-- returns  1, site count, failures, 0  |  0, milliseconds to wait, policy, 0
operations.C = function(keys, args)
  local admitted, first, second = admit_to_log(KEYS[keys], 0, tonumber(ARGV[args]),
    tonumber(ARGV[args + 1]), tonumber(ARGV[args + 2]))
  answer(admitted and 1 or 0, first, second, 0)
  return keys + 1, args + 3
end
