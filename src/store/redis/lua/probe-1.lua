-- P: reads and counts nothing, so that a call without requests brings the reply's epoch and number of batches.
-- KEYS     a key that never exists: while a Cluster moves the slot it refuses calls with new keys, and the probe must find that out
-- ARGV     | 'P' | 'W' to write the present epoch again: a read-only replica or a full memory refuses that |
-- returns  1 (done), 0, 0
-- From shared.lua: operations, answer
-- From epoch.lua: write_epoch
operations[80] = function(next_key, operation) -- 'P'
  if #operation > 1 then write_epoch() end
  answer(1, 0, 0)
  return next_key + 1
end
