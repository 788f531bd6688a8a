-- Stores when API keys were last used; times never go back.
-- KEYS     last uses (hash: Unix milliseconds by API key id)
-- ARGV     for each: API key id | Unix milliseconds
-- returns  how many times were stored
local noted = 0
for index = 1, #ARGV, 2 do
  local present = redis.call('HGET', KEYS[1], ARGV[index])
  if not present or tonumber(ARGV[index + 1]) > tonumber(present) then
    redis.call('HSET', KEYS[1], ARGV[index], ARGV[index + 1])
    noted = noted + 1
  end
end
return noted
