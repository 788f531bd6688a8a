-- Adds one worker's counts of proofs to the load of each site; computes the same as domain/load.ts.
-- KEYS     load of each site
-- ARGV     time, see time.lua | proofs of each site since its last report
-- returns  for each site: rate and usual rate as decimal strings
local FAST_MS, USUAL_MS = 10000, 3600000
local USUAL_MIN, TOLERATED = 0.5, 4
local ATTACK_GROWTH, DAY_MS = 0.2, 86400000

local answers = {}
for index = 1, #KEYS do
  local count = tonumber(ARGV[index + 1])
  local state = redis.call('GET', KEYS[index])
  local at, rate, usual = wall, 0, 0
  if state then at, rate, usual = struct.unpack('>ddd', state) end
  local elapsed = math.max(0, wall - at)
  rate = rate * math.exp(-elapsed / FAST_MS) + count * 1000 / FAST_MS
  local weight = 1 - math.exp(-elapsed / USUAL_MS)
  local followed = usual + (rate - usual) * weight
  local floor = math.max(USUAL_MIN, usual)
  local most = floor * (1 + ATTACK_GROWTH * elapsed / DAY_MS)
  usual = rate > TOLERATED * floor and math.min(followed, most) or followed
  redis.call('SET', KEYS[index], struct.pack('>ddd', math.max(wall, at), rate, usual), 'PX', 24 * USUAL_MS)
  answers[index * 2 - 1] = string.format('%.17g', rate)
  answers[index * 2] = string.format('%.17g', usual)
end
return answers
