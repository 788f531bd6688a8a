-- T: takes back the proof that operation V has just added to the meters, because its challenge was too cheap.
-- KEYS     none
-- ARGV     | 'T' | accepted proofs of the address 1 | free proofs a minute of the site and of each network 3 each | ...
--          ... numbers of their meters 2 each |
-- returns  1, 0, 0
-- From clock.lua: unpack_bytes, operations, answer
-- From meters.lua: add_proof
operations[84] = function(keys, operation) -- 'T'
  add_proof(operation, 3, unpack_bytes('>B', operation, 2), -1)
  answer(1, 0, 0)
  return keys
end
