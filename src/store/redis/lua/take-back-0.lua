-- T: takes a proof out of the meters again that was just added, because its challenge was too cheap.
-- KEYS     none
-- ARGV     | 'T' | earlier proofs of the address 1 | as admit-solution-2.lua from the site's free proofs on |
-- returns  1
operations[84] = function(keys, operation) -- 'T'
  add_proof(operation, 3, unpack_bytes('>B', operation, 2), -1)
  answer(1, 0, 0)
  return keys
end
