-- Adds one worker's counts of proofs to the load of each site; counts of 0 only ask. Computes the same as domain/load.ts.
-- KEYS     load of each site
-- ARGV     time, see time.lua | for each: proofs of sources that come again | of all others | expected usual rate
-- returns  for each site: rate, usual rate, growth, and when its first proofs were counted (0 before them), as decimal strings
local FAST_MS, ONCE_MS, USUAL_MS, DAY_MS = 10000, 60000, 3600000, 86400000
local USUAL_MIN, TOLERATED, ATTACK_GROWTH = 0.5, 4, 0.2
local KEPT_MS = 30 * DAY_MS

local function growth_of(once, usual)
  return math.max(1, once / math.max(USUAL_MIN, usual))
end

local answers = {}
for index = 1, #KEYS do
  local first = index * 3 - 1
  local again, others, expected = tonumber(ARGV[first]), tonumber(ARGV[first + 1]), tonumber(ARGV[first + 2])
  local state = redis.call('GET', KEYS[index])
  local since, at, rate, usual, once, once_usual = wall, wall, 0, 0, 0, 0
  if state and #state == 48 then since, at, rate, usual, once, once_usual = struct.unpack('>dddddd', state) end
  local elapsed, age = math.max(0, wall - at), wall - since
  local is_new = age < USUAL_MS
  local weight = is_new and math.min(1, elapsed / math.max(FAST_MS, age)) or 1 - math.exp(-elapsed / USUAL_MS)
  rate = rate * math.exp(-elapsed / FAST_MS) + again * 1000 / FAST_MS
  once = once * math.exp(-elapsed / ONCE_MS) + others * 1000 / ONCE_MS
  local floor = math.max(USUAL_MIN, usual, expected)
  local is_held = not is_new and rate > TOLERATED * floor * growth_of(once, once_usual)
  local followed = usual + (rate - usual) * weight
  local most = floor * (1 + ATTACK_GROWTH * elapsed / (age < DAY_MS and USUAL_MS or DAY_MS))
  usual = is_held and math.min(followed, most) or followed
  once_usual = once_usual + (once - once_usual) * weight
  local has_counts = again + others > 0
  if has_counts then
    redis.call('SET', KEYS[index], struct.pack('>dddddd', since, wall, rate, usual, once, once_usual), 'PX', KEPT_MS)
  end
  for _, value in ipairs({ rate, math.max(usual, expected), growth_of(once, once_usual), (state or has_counts) and since or 0 }) do
    answers[#answers + 1] = string.format('%.17g', value)
  end
end
return answers
