-- Meters: counts of accepted proofs. Computes the same as domain/meters.ts, which describes the record:
-- | since, Unix seconds 4 | at, Unix ms 8 | fast 4 | slow 8 |
--
-- Each meter that changed is written once, at the end of the turn. The reply has them all, in the order of their keys, so that
-- a challenge costs no more than its share of the turn's MGET.
local METER = '>I4dfd'
local NO_METER = string.rep('\0', 24)
local exp, abs = math.exp, math.abs

local meter_count, shards = tonumber(ARGV[6]), tonumber(ARGV[7])
local FIRST_METER = 3 -- keys before them
local ALL = 1
local LEVEL_INDEXES = { [0] = '', [4] = '>I2I2', [6] = '>I2I2I2' } -- by the bytes of the numbers
local meters = {} -- those that changed, by number

local function meter_of(index, fast_ms)
  local meter = meters[index]
  if meter then return meter end
  meter = { since = math.floor(wall / 1000), fast = 0, slow = 0, fast_ms = fast_ms }
  if values[FIRST_METER + index] then
    local since, at, fast, slow = unpack_bytes(METER, values[FIRST_METER + index])
    local elapsed = abs(wall - at)
    if since < meter.since then meter.since = since end
    meter.fast, meter.slow = fast * exp(-elapsed / fast_ms), slow * exp(-elapsed / SLOW_MS)
  end
  meters[index] = meter
  return meter
end

-- The fast count of a network. Most networks bring little, so their meters are not taken apart further.
local function fast_of(index)
  if meters[index] then return meters[index].fast end
  if not values[FIRST_METER + index] then return 0 end
  local _, at, fast = unpack_bytes(METER, values[FIRST_METER + index])
  return fast * exp(-abs(wall - at) / NETWORK_FAST_MS)
end

-- The time over which slow counts of such an age were gathered; each once a turn.
local gathered = {}
local function gathered_over(age)
  if not gathered[age] then gathered[age] = math.max(MINUTE_MS, SLOW_MS * (1 - exp(-age / SLOW_MS))) end
  return gathered[age]
end

-- Recent and usual proofs a minute.
local function rates_of(meter, age)
  return meter.fast * MINUTE_MS / meter.fast_ms, meter.slow * MINUTE_MS / gathered_over(age)
end

local function growth_of(meter, age)
  local recent, usual = rates_of(meter, age)
  return math.min(GROWTH_MAX, math.max(1, recent / math.max(USUAL_MIN, usual)))
end

local function count(meter, proofs, above, age)
  if above then
    local recent, usual = rates_of(meter, age)
    meter.slow = meter.slow + proofs * math.min(1, usual / recent)
  else
    meter.slow = meter.slow + proofs
  end
  meter.fast = meter.fast + proofs
end

local function is_above(meter, free, age)
  local recent, usual = rates_of(meter, age)
  local days = (wall - meter.since * 1000) / DAY_MS
  local growth = 1 + (growth_of(meter_of(ALL, NETWORK_FAST_MS), age) - 1) * math.min(1, days * 24)
  return recent >= math.max(free, TOLERATED * usual * growth)
end

-- Adds an accepted proof. `fields` are those of admit-solution-2.lua behind the mark, from the byte `at` on.
local function add_proof(fields, at, accepted, mark)
  local version, expected, in_time, repeat_index, first_index = unpack_bytes('>BI3BI2I2', fields, at)
  at = at + 9
  if in_time > 0 then
    local timed_index, late_index = unpack_bytes('>I2I2', fields, at)
    at = at + 4
    count(meter_of(timed_index, NETWORK_FAST_MS), shards)
    if in_time == 2 then count(meter_of(late_index, NETWORK_FAST_MS), shards) end
  end
  local free, is_owner, is_wide = FREE[version], IS_OWNER[version], IS_WIDE[version]
  local all = meter_of(ALL, NETWORK_FAST_MS)
  local age = wall - all.since * 1000
  local indexes, fasts, above, owner_above = { unpack_bytes(LEVEL_INDEXES[#fields - at + 1], fields, at) }, {}, {}, false
  local levels = #indexes - 1 -- behind them is the position
  for level = 1, levels do
    fasts[level] = fast_of(indexes[level])
    if fasts[level] * MINUTE_MS >= free[level] * NETWORK_FAST_MS then
      above[level] = is_above(meter_of(indexes[level], NETWORK_FAST_MS), free[level], age)
      if is_owner[level] then owner_above = above[level] end
    end
  end

  local repeats, firsts = meter_of(repeat_index, SITE_FAST_MS), meter_of(first_index, NETWORK_FAST_MS)
  local site_age = wall - math.min(repeats.since, firsts.since) * 1000
  local of_attack = false
  if accepted >= REPEAT_PROOFS or owner_above then
    local recent, usual = rates_of(repeats, site_age)
    of_attack = recent >= TOLERATED * math.max(USUAL_MIN, usual, expected) * growth_of(firsts, site_age)
    count(repeats, shards, of_attack and site_age >= LEARNS_ALL_MS, site_age)
  else
    count(firsts, shards)
  end

  if levels == 0 then return end
  local is_old = age >= LEARNS_ALL_MS
  for level = 1, levels do
    local proofs = is_wide[level] and shards or 1
    if fasts[level] * MINUTE_MS * QUIET_PROOFS < free[level] * NETWORK_FAST_MS then
      proofs = mark % QUIET_PROOFS == 0 and proofs * QUIET_PROOFS or 0
    end
    if proofs > 0 then
      local meter = meter_of(indexes[level], NETWORK_FAST_MS)
      count(meter, proofs, of_attack or (above[level] and is_old), age)
    end
  end
  local recent, usual = rates_of(all, age)
  count(all, shards, is_old and recent >= TOLERATED * math.max(USUAL_MIN, usual), age)
end

-- Writes the meters that changed. Returns all of the turn as bytes.
local function meters_text()
  for index, meter in pairs(meters) do
    local record = pack(METER, meter.since, wall, meter.fast, meter.slow)
    local kept = math.min(KEPT_MS_MAX, KEPT_MS_A_PROOF * math.max(1, meter.slow))
    call('SET', KEYS[FIRST_METER + index], record, 'EX', seconds_text(kept))
    values[FIRST_METER + index] = record
  end
  local last = FIRST_METER + meter_count
  for number = FIRST_METER + 1, last do values[number] = values[number] or NO_METER end
  return table.concat(values, '', FIRST_METER + 1, last)
end
