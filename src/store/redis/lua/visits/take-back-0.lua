-- T: takes back the proof that operation V has just added to the meters, because no token follows, or the site's maximum capped its price.
-- KEYS     none: meters.lua writes the meters at the end of the batch, by their numbers
-- ARGV     | 'T' | accepted proofs of the address before this one (at most 255), which decide on the site's meter 1 | ...
--          ... free proofs a minute of the site and of each network 3 each | numbers of their meters 2 each |
-- returns  1 (done), 0, 0
-- From shared.lua: unpack_bytes, operations, answer
-- From meters.lua: add_proof
operations[84] = function(next_key, operation) -- 'T'
  local accepted, rest = unpack_bytes('>B', operation, 2)
  add_proof(operation, rest, accepted, -1) -- reads the meters from byte `rest` on, and adds -1 proofs
  answer(1, 0, 0)
  return next_key
end
