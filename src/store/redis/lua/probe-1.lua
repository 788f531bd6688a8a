-- P: writes the epoch again, so that a replica or a full memory shows.
-- KEYS     a key that never exists: while a Cluster moves the slot to another node, calls with new keys do not run, and so
--          the probe does not either
-- ARGV     | 'P' |
-- returns  1, 0, 0
operations[80] = function(keys)
  write_epoch()
  answer(1, 0, 0)
  return keys + 1
end
