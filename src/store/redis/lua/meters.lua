-- Meters: counts of accepted proofs. Computes the same as domain/meters.ts, which describes the record:
-- | since, Unix seconds 4 | at, Unix ms 8 | fast 4 | slow 8 |
--
-- All meters of a turn are read by one MGET, and each that changed is written once, at the end. The reply has them all, in
-- the order of their keys, so that a challenge costs no more than its share of that MGET.
local METER = '>I4dfd'
local NO_METER = string.rep('\0', 24)
local exp, max, min = math.exp, math.max, math.min

local meter_count, shards = tonumber(ARGV[5]), tonumber(ARGV[6])
local FIRST_METER = 2 -- keys before them
local records = meter_count > 0 and call('MGET', unpack(KEYS, FIRST_METER + 1, FIRST_METER + meter_count)) or {}
local meters = {}

local function meter_of(index, fast_ms)
  local meter = meters[index]
  if meter then return meter end
  meter = { since = math.floor(wall / 1000), fast = 0, slow = 0, fast_ms = fast_ms }
  if records[index] then
    local since, at, fast, slow = unpack_bytes(METER, records[index])
    local elapsed = math.abs(wall - at)
    meter.since = min(since, meter.since)
    meter.fast, meter.slow = fast * exp(-elapsed / fast_ms), slow * exp(-elapsed / SLOW_MS)
  end
  meters[index] = meter
  return meter
end

-- Of a meter: recent and usual proofs a minute, days since its first proof. `gathered`: see gathered_over.
local function rates_of(meter, gathered)
  return meter.fast * MINUTE_MS / meter.fast_ms, meter.slow * MINUTE_MS / gathered, (wall - meter.since * 1000) / DAY_MS
end

-- The time over which slow counts of such an age were gathered.
local function gathered_over(age)
  return max(MINUTE_MS, SLOW_MS * (1 - exp(-age / SLOW_MS)))
end

local function growth_of(recent, usual)
  return min(GROWTH_MAX, max(1, recent / max(USUAL_MIN, usual)))
end

local function count(meter, proofs, above, recent, usual)
  meter.fast = meter.fast + proofs
  meter.slow = meter.slow + (above and proofs * min(1, usual / recent) or proofs)
end

-- Adds an accepted proof. `fields` are those of admit-solution-2.lua behind the mark, from the byte `at` on.
local function add_proof(fields, at, accepted)
  local version, expected, in_time, repeat_index, first_index = unpack_bytes('>BI3BI2I2', fields, at)
  at = at + 9
  local repeats, firsts = meter_of(repeat_index, SITE_FAST_MS), meter_of(first_index, NETWORK_FAST_MS)
  if in_time > 0 then
    local timed_index, late_index = unpack_bytes('>I2I2', fields, at)
    at = at + 4
    count(meter_of(timed_index, NETWORK_FAST_MS), shards)
    if in_time == 2 then count(meter_of(late_index, NETWORK_FAST_MS), shards) end
  end
  local free, is_owner, is_wide = FREE[version], IS_OWNER[version], IS_WIDE[version]
  local all = meter_of(1, NETWORK_FAST_MS)
  local age = wall - all.since * 1000
  local gathered = gathered_over(age)
  local all_recent, all_usual = rates_of(all, gathered)
  local growth = growth_of(all_recent, all_usual)

  local networks, above, owner_above = {}, {}, false
  for level = 1, (#fields - at + 1) / 2 do
    local meter = meter_of(unpack_bytes('>I2', fields, at + level * 2 - 2), NETWORK_FAST_MS)
    local recent, usual, days = rates_of(meter, gathered)
    local own_growth = 1 + (growth - 1) * min(1, days * 24)
    networks[level] = meter
    above[level] = recent >= max(free[level], TOLERATED * usual * own_growth)
    owner_above = owner_above or (is_owner[level] and above[level])
  end

  local site_age = wall - min(repeats.since, firsts.since) * 1000
  local site_gathered = gathered_over(site_age)
  local first_recent, first_usual = rates_of(firsts, site_gathered)
  local of_attack = false
  if accepted >= REPEAT_PROOFS or owner_above then
    local recent, usual = rates_of(repeats, site_gathered)
    local budget = TOLERATED * max(USUAL_MIN, usual, expected) * growth_of(first_recent, first_usual)
    of_attack = recent >= budget
    count(repeats, shards, of_attack and site_age >= LEARNS_ALL_MS, recent, usual)
  else
    count(firsts, shards)
  end

  if #networks == 0 then return end
  local is_old = age >= LEARNS_ALL_MS
  for level, meter in ipairs(networks) do
    local recent, usual = rates_of(meter, gathered)
    count(meter, is_wide[level] and shards or 1, of_attack or (above[level] and is_old), recent, usual)
  end
  count(all, shards, is_old and all_recent >= TOLERATED * max(USUAL_MIN, all_usual), all_recent, all_usual)
end

-- Writes the meters that changed. Returns all of the turn as bytes.
local function meters_text()
  for index, meter in pairs(meters) do
    local record = pack(METER, meter.since, wall, meter.fast, meter.slow)
    local kept = min(KEPT_MS_MAX, KEPT_MS_A_PROOF * max(1, meter.slow))
    call('SET', KEYS[FIRST_METER + index], record, 'EX', seconds_text(kept))
    records[index] = record
  end
  for index = 1, meter_count do records[index] = records[index] or NO_METER end
  return table.concat(records)
end
