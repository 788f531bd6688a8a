-- Writes sites and API keys, each with its audit log entry; or nothing, if another process changed one of them meanwhile.
-- KEYS     revision, the number of the last change | changes (sorted set: member by the number of its last change) | ...
--          ... audit log (stream) | each record
-- ARGV     for each record: expected present value, '' for none | new value | member of `changes` | audit entry
--          expected revision, '' for any
-- returns  1 written | 0 changed meanwhile
local FIRST, FIELDS = 4, 4

for index = FIRST, #KEYS do
  local present = redis.call('GET', KEYS[index]) or ''
  if present ~= ARGV[(index - FIRST) * FIELDS + 1] then return 0 end
end

local expected = ARGV[#ARGV]
if expected ~= '' and expected ~= (redis.call('GET', KEYS[1]) or '0') then return 0 end

-- Numbers are at least the time in microseconds: after a failover that lost changes, a later one has no number that workers have read.
local time = redis.call('TIME')
local behind = time[1] * 1000000 + time[2] - (redis.call('GET', KEYS[1]) or 0)
if behind > 0 then redis.call('INCRBY', KEYS[1], behind) end

for index = FIRST, #KEYS do
  local at = (index - FIRST) * FIELDS
  -- The record is written last. If that fails, workers read an unchanged record once more; the other way round, they would miss
  -- a change.
  redis.call('XADD', KEYS[3], '*', 'entry', ARGV[at + 4])
  redis.call('ZADD', KEYS[2], redis.call('INCR', KEYS[1]), ARGV[at + 3])
  redis.call('SET', KEYS[index], ARGV[at + 2])
end
return 1
