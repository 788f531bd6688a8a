-- Adds one worker's counts of proofs to the table of networks; computes the same as domain/networks.ts, which describes it.
-- KEYS     the table (a string; a slot that was never written reads as empty)
-- ARGV     time, see time.lua | proofs, each counted once | ...
--          ... for each network: tag | proofs a minute that cost nothing | proofs | those that may be learned
-- returns  for all networks together, then for each: recent, usual and days as decimal strings
local SLOTS, SLOT, ALL, ALL_FREE = 65536, 28, 1, 120
local RECENT_MS, USUAL_MS, FREE_MS, MINUTE_MS = 60000, 86400000, 3600000, 60000
local TOLERATED, NEWCOMER_SHARE, GROWTH_MAX, FLOOD_LEARNED, HOURS_A_DAY = 4, 0.01, 64, 2, 24
local call, pack, unpack_bytes, exp, max, min = redis.call, struct.pack, struct.unpack, math.exp, math.max, math.min
local key, now, age, all_usual, growth = KEYS[1], wall, 0, 0, 1

local began = call('GETRANGE', key, 4, 11)
if #began == 8 then age = now - unpack_bytes('>d', began) end
local window = max(1, USUAL_MS * (1 - exp(-age / USUAL_MS)) / MINUTE_MS)

local answers = {}
local function answer(recent, usual, days)
  local size = #answers
  answers[size + 1] = string.format('%.17g', recent)
  answers[size + 2] = string.format('%.17g', usual)
  answers[size + 3] = string.format('%.17g', days)
  return recent, usual
end

-- A float as the table holds it: 32 bits.
local function as_float(value)
  return (unpack_bytes('>f', pack('>f', value)))
end

local function add(at, tag, free, proofs, peaceful)
  local slot = call('GETRANGE', key, at * SLOT, at * SLOT + SLOT - 1)
  local held, since, last, recent, usual = 0, 0, 0, 0, 0
  if #slot == SLOT then held, since, last, recent, usual = unpack_bytes('>I4ddff', slot) end
  local elapsed = max(0, now - last)
  recent, usual = recent * exp(-elapsed / RECENT_MS), usual * exp(-elapsed / USUAL_MS)
  if held ~= tag and (usual > proofs or (proofs == 0 and at > 0)) then
    call('SETRANGE', key, at * SLOT, pack('>I4ddff', held, since, now, recent, usual - proofs))
    return answer(proofs, 0, 0)
  end
  if held ~= tag then since, recent, usual = now, 0, 0 end
  local days = (now - since) / USUAL_MS
  local own_growth = 1 + (growth - 1) * min(1, days * HOURS_A_DAY)
  local budget = max(free, NEWCOMER_SHARE * all_usual, TOLERATED * usual / window * own_growth)
  local most = (at == 0 and FLOOD_LEARNED or 1) * usual * elapsed / MINUTE_MS / window
  local learned = (age < FREE_MS or recent + proofs <= budget) and peaceful or min(peaceful, most)
  recent, usual = as_float(recent + proofs), as_float(usual + learned)
  call('SETRANGE', key, at * SLOT, pack('>I4ddff', tag, since, now, recent, usual))
  return answer(recent, usual / window, days)
end

local all_recent
all_recent, all_usual = add(0, ALL, ALL_FREE, tonumber(ARGV[2]), tonumber(ARGV[2]))
if all_usual > 0 then growth = max(1, min(GROWTH_MAX, all_recent / all_usual)) end
for index = 3, #ARGV, 4 do
  local tag = tonumber(ARGV[index])
  local free, proofs, peaceful = tonumber(ARGV[index + 1]), tonumber(ARGV[index + 2]), tonumber(ARGV[index + 3])
  add(1 + tag % SLOTS, tag, free, proofs, peaceful)
end
return answers
