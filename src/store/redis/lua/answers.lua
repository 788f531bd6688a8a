-- What every operation uses: the list of answers, and the shard's epoch.
-- The epoch is a random number that holds while this server process lives (see probe-1.lua); what was issued under
-- another epoch is refused, since its marks of single use may be gone.
local operations = {}
local shard_epoch = redis.call('GET', KEYS[1])
if not shard_epoch then
  shard_epoch = ARGV[2]
  redis.call('SET', KEYS[1], shard_epoch)
end
local answers = { tonumber(shard_epoch) }
local answered = 1

local function answer(status, first, second, third)
  answers[answered + 1] = status
  answers[answered + 2] = first
  answers[answered + 3] = second
  answers[answered + 4] = third
  answered = answered + 4
end
