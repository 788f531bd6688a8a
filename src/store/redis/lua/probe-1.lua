-- P: writes, so that a replica or a full memory shows.
-- KEYS     a key of its own
-- ARGV     none
-- returns  1, 0, 0, 0
operations.P = function(keys, args)
  redis.call('SET', KEYS[keys], '', 'PX', 1000)
  answer(1, 0, 0, 0)
  return keys + 1, args
end
