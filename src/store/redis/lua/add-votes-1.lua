-- Adds one worker's votes on the speed of visitors' devices; computes the same as domain/calibrator.ts.
-- KEYS     speeds (hash: lead, lead of the day and start of the day, by site key)
-- ARGV     time, see time.lua | for each: site key | sum of votes, 0 to ask
-- returns  for each: lead and lead of the day as decimals, nil for a site that never had a vote
local STEP, DAY_MS = 0.0005, 86400000
local DAY_BITS, FIRST_DAY_BITS = 0.5, 3

local answers = {}
for index = 2, #ARGV, 2 do
  local votes = tonumber(ARGV[index + 1])
  local state = redis.call('HGET', KEYS[1], ARGV[index])
  local lead, of_day, day = 0, 0, wall
  if state then lead, of_day, day = struct.unpack('>ddd', state) end
  if votes ~= 0 then
    if math.abs(wall - day) >= DAY_MS then of_day, day = lead, wall end
    local most = of_day == 0 and FIRST_DAY_BITS or DAY_BITS
    lead = math.max(of_day - most, math.min(of_day + most, lead + votes * STEP))
    redis.call('HSET', KEYS[1], ARGV[index], struct.pack('>ddd', lead, of_day, day))
  end
  answers[index / 2] = (state or votes ~= 0) and string.format('%.17g %.17g', lead, of_day) or false
end
return answers
