-- P: writes, so that a replica or a full memory shows.
-- KEYS     a key that never exists: while a Cluster moves the slot elsewhere, calls with new keys do not run, and so
--          this one does not either
-- ARGV     | 'P' |
-- returns  1, 0, 0
operations[80] = function(keys)
  call('SET', KEYS[1], epoch_text)
  answer(1, 0, 0)
  return keys + 1
end
