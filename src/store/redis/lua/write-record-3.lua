-- Writes a configuration record if nobody else changed it meanwhile.
-- KEYS     record | revision counter | index of changes (sorted set: member by revision of its last change)
-- ARGV     expected present value, '' for none | new value | member of the index
-- returns  1 written | 0 changed meanwhile
local present = redis.call('GET', KEYS[1]) or ''
if present ~= ARGV[1] then return 0 end
-- The record last: if one of these fails, workers may look once in vain, but never miss a change.
redis.call('ZADD', KEYS[3], redis.call('INCR', KEYS[2]), ARGV[3])
redis.call('SET', KEYS[1], ARGV[2])
return 1
