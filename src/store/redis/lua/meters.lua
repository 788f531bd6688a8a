-- Meters: counts of accepted proofs. Computes the same as domain/meters.ts, which describes the record:
-- | since, Unix seconds 4 | at, Unix ms 8 | fast 4 | slow 8 |
-- scripts.ts puts time.lua, clock.lua and the policy's numbers (TOLERATED, ...) before this.
--
-- Meters that changed are written once, at the end of the turn; new networks at once. (math.min and math.max take 0.7 % of a
-- verification each: not on its usual way.)
local METER = '>I4dfd'

local ALL = 1
local meters = {} -- unpacked and faded, by number
local second = math.floor(wall / 1000)

local function meter_of(index, fast_ms)
  local meter = meters[index]
  if meter then return meter end
  meter = { since = second, at = 0, fast = 0, slow = 0, fast_ms = fast_ms, changed = false, of_network = false }
  if values[METERS_FROM + index] then
    local since, at, fast, slow = unpack_bytes(METER, values[METERS_FROM + index])
    local elapsed = math.abs(wall - at)
    if since < second then meter.since = since end
    meter.at = at
    meter.fast, meter.slow = fast * math.exp(-elapsed / fast_ms), slow * math.exp(-elapsed / SLOW_MS)
  end
  meters[index] = meter
  return meter
end

-- Proofs a minute: recent and usual.
local gathered = {} -- milliseconds that `slow` stands for, by age. Kept, because that saves 2 % of a verification
local function rates_of(meter, age)
  local ms = gathered[age]
  if not ms then
    ms = math.max(MINUTE_MS, SLOW_MS * (1 - math.exp(-age / SLOW_MS)))
    gathered[age] = ms
  end
  return meter.fast * MINUTE_MS / meter.fast_ms, meter.slow * MINUTE_MS / ms
end

local function growth_of(meter, age)
  local recent, usual = rates_of(meter, age)
  return math.min(GROWTH_MAX, math.max(1, recent / math.max(USUAL_MIN, usual)))
end

-- If `times` is given, no more than so many times the usual rate is learned, or `least` a minute.
local function count(meter, proofs, age, times, least)
  meter.changed = true
  local learned = proofs
  if times then
    local recent, usual = rates_of(meter, age)
    local most = times * usual
    if most < least then most = least end
    if recent > most then learned = proofs * most / recent end
  end
  meter.slow = meter.slow + learned
  meter.fast = meter.fast + proofs
end

-- How busy a known network is. Most are quiet, which the count shows even before it fades: then no table is made.
local quiet_proofs = shards == 1 and QUIET_PROOFS or QUIET_PROOFS_SHARDED
local QUIET = 0 -- less than 1 / quiet_proofs of what is free
local FREE = 1
local BUSY = 2 -- within its usual budget
local EXCUSED = 3 -- within its budget, which has grown with people who come for the first time
local ABOVE = 4
local function pressure_of(index, free, age, firsts, site_age, owner_index)
  if not meters[index] then
    local fast = unpack_bytes('>f', values[METERS_FROM + index], 13)
    if fast * MINUTE_MS * quiet_proofs < free * NETWORK_FAST_MS then return QUIET end
  end
  local meter = meter_of(index, NETWORK_FAST_MS)
  local recent, usual = rates_of(meter, age)
  if owner_index and shards > 1 then -- wideMeter of domain/meters.ts
    local own_recent, own_usual = 0, 0
    if values[METERS_FROM + owner_index] then
      own_recent, own_usual = rates_of(meter_of(owner_index, NETWORK_FAST_MS), age)
    end
    recent = math.max(recent / shards, recent - (shards - 1) * own_recent)
    usual = math.max(usual / shards, usual - (shards - 1) * own_usual)
  end
  if recent < free then return recent * quiet_proofs < free and QUIET or FREE end
  if recent < TOLERATED * usual then return BUSY end
  local days = (wall - meter.since * 1000) / DAY_MS
  local growth = 1 + (growth_of(firsts, site_age) - 1) * math.min(1, days * 24)
  return recent < TOLERATED * usual * growth and EXCUSED or ABOVE
end

-- Most networks are new. (A table for each would take 3 % of a verification.) Each network that has a table has a value too.
local function start_network(index, proofs)
  local record = pack(METER, second, wall, proofs, proofs)
  values[METERS_FROM + index] = record
  call('SET', KEYS[METERS_FROM + index], record, 'EX', seconds_text(math.min(KEPT_MS_MAX, KEPT_MS_A_PROOF * proofs)))
end

local function count_network(index, free, pressure, proofs, of_attack, age)
  if pressure == QUIET then proofs = proofs * quiet_proofs end
  if not values[METERS_FROM + index] then return start_network(index, proofs) end
  local meter = meter_of(index, NETWORK_FAST_MS)
  meter.of_network = true
  local is_old = age >= LEARNS_ALL_MS
  if of_attack or (pressure == ABOVE and is_old) then count(meter, proofs, age, 1, 0)
  elseif pressure == EXCUSED and is_old then count(meter, proofs, age, TOLERATED, free)
  else count(meter, proofs) end
end

-- Adds an accepted proof. `fields` are those of admit-solution-2.lua from the IP version on, which is at byte `at`.
local function add_proof(fields, at, accepted)
  local version, draw, expected, in_time, repeat_index, first_index = unpack_bytes('>BBI3BI2I2', fields, at)
  at = at + 10
  if in_time > 0 then -- 1 in time, 2 late, 3 above the site's base, so neither
    local timed_index, late_index = unpack_bytes('>I2I2', fields, at)
    at = at + 4
    if in_time < 3 then count(meter_of(timed_index, NETWORK_FAST_MS), shards) end
    if in_time == 2 then count(meter_of(late_index, NETWORK_FAST_MS), shards) end
  end
  local owner_index, wide_index
  if at < #fields then owner_index, wide_index = unpack_bytes('>I2I2', fields, at) end

  local all = meters[ALL] or meter_of(ALL, NETWORK_FAST_MS)
  local age = wall - all.since * 1000
  local repeats = meters[repeat_index] or meter_of(repeat_index, SITE_FAST_MS)
  local firsts = meters[first_index] or meter_of(first_index, NETWORK_FAST_MS)
  local site_age = wall - (repeats.since < firsts.since and repeats or firsts).since * 1000
  local owner, wide, owner_free, wide_free = QUIET, QUIET
  if owner_index then
    owner_free, wide_free = OWNER_FREE_V4, WIDE_FREE_V4
    if version == 6 then owner_free, wide_free = OWNER_FREE_V6, WIDE_FREE_V6 end
    if values[METERS_FROM + owner_index] then
      owner = pressure_of(owner_index, owner_free, age, firsts, site_age)
    end
    if values[METERS_FROM + wide_index] then
      wide = pressure_of(wide_index, wide_free, age, firsts, site_age, owner_index)
    end
  end

  local of_attack = false
  if accepted >= REPEAT_PROOFS or owner == ABOVE then
    local recent, usual = rates_of(repeats, site_age)
    of_attack = recent >= TOLERATED * math.max(USUAL_MIN, usual, expected) * growth_of(firsts, site_age)
    if site_age < LEARNS_ALL_MS then count(repeats, shards)
    elseif of_attack then count(repeats, shards, site_age, 1, 0)
    else count(repeats, shards, site_age, TOLERATED, TOLERATED * math.max(USUAL_MIN, expected)) end
  elseif accepted == 0 and owner < BUSY and wide < EXCUSED then
    if site_age < LEARNS_ALL_MS then count(firsts, shards)
    else count(firsts, shards, site_age, TOLERATED, TOLERATED * USUAL_MIN) end
  end

  if not owner_index then return end
  local is_drawn = draw % quiet_proofs == 0
  if is_drawn or owner > QUIET then count_network(owner_index, owner_free, owner, 1, of_attack, age) end
  if is_drawn or wide > QUIET then count_network(wide_index, wide_free, wide, shards, of_attack, age) end
  local recent, usual = rates_of(all, age)
  local is_flood = recent >= TOLERATED * USUAL_MIN and recent >= TOLERATED * usual
  if is_flood and age >= LEARNS_ALL_MS then count(all, shards, age, 1, 0)
  else count(all, shards) end
end

-- One of all traffic or a site lives for a week, from its first proof of each day on: a new end takes 45 % of a SET.
at_end.meters = function()
  for index, meter in pairs(meters) do if meter.changed then
    local key, record = KEYS[METERS_FROM + index], pack(METER, meter.since, wall, meter.fast, meter.slow)
    values[METERS_FROM + index] = record
    if meter.of_network then
      call('SET', key, record, 'EX', seconds_text(math.min(KEPT_MS_MAX, KEPT_MS_A_PROOF * math.max(1, meter.slow))))
    elseif meter.at > 0 and shares_slot(meter.at, wall, DAY_MS) then
      call('SET', key, record, 'KEEPTTL')
    else
      call('SET', key, record, 'EX', seconds_text(KEPT_MS_MAX))
    end
  end end
end
