-- Meters: two sums of accepted proofs that fade (domain/meters.ts explains the rules):  | at, Unix ms 8 | recent 4 | usual 8 |
-- They have numbers, in the order of the call's keys, from 3 on. Numbers 1 and 2 are two times of the same form, rewritten daily lest they
-- expire: | renewed 8 | zero 4 | born 8 |. 1 is when the shard's first proof came, which is the age of its sites' meters; 2 when the first
-- under the present secret came, the age of its networks' meters, whose names that secret makes.
-- From time.lua: wall
-- From shared.lua: call, pack, unpack_bytes, meter_count, values, EPOCH_KEYS, at_end, seconds_text, shares_step
-- From scripts.ts: NETWORK_RECENT_MS, SITE_RECENT_MS, USUAL_MS, BUDGET_FACTOR, LEARNED_SHARE, LEARNS_ALL_MS, RETURNING_PROOFS
local MINUTE_MS, DAY_MS, KEPT_MS_A_PROOF, KEPT_MS_MAX = 60000, 86400000, 300000, 604800000 -- domain/meters.ts
local METER = '>dfd'

local meters = {} -- by number, from 3 on: those that an operation of this batch has used, faded to now
local has_proof = false -- whether this batch has added one, or taken one back

-- Milliseconds since a first proof, whose time has the number 1 or 2; 0 before it.
local function age_of(number)
  local record = meter_count > 0 and values[EPOCH_KEYS + number] -- in a call without meters, other keys stand there
  if not record then return 0 end
  local _, _, born = unpack_bytes(METER, record)
  return math.max(0, wall - born)
end

local age, names_age = age_of(1), age_of(2)

-- Returns a meter as it is now; one that is not there starts at zero.
local function meter_of(number, recent_ms)
  local meter = meters[number]
  if meter then return meter end
  meter = { recent = 0, usual = 0 }
  if values[EPOCH_KEYS + number] then
    local at, recent, usual = unpack_bytes(METER, values[EPOCH_KEYS + number])
    local elapsed = math.abs(wall - at)
    meter.recent, meter.usual = recent * math.exp(-elapsed / recent_ms), usual * math.exp(-elapsed / USUAL_MS)
  end
  meters[number] = meter
  return meter
end

-- At most a share of the budget (`free` proofs a minute, or `BUDGET_FACTOR` times the usual rate) is learned as usual, but all in
-- the first hour, while nothing is known to be usual.
local function add(number, proofs, recent_ms, free, meter_age)
  local meter = meter_of(number, recent_ms)
  -- Adding a proof (`recent` is 5, the rate of 5) and taking it back (`recent` is 6 by then, the rate of 5 again) use one rate, so they
  -- have one share; otherwise a part of the proof would stay. If it was the only one, and has faded to 0.9, the rate of -0.1 gives the
  -- share 1: all is taken back.
  local rate_before = (meter.recent + math.min(0, proofs)) * MINUTE_MS / recent_ms
  local gathered = math.max(MINUTE_MS, USUAL_MS * (1 - math.exp(-meter_age / USUAL_MS))) -- milliseconds that `usual` stands for
  local learned_rate = LEARNED_SHARE * math.max(free, BUDGET_FACTOR * meter.usual * MINUTE_MS / gathered)
  local share = (meter_age < LEARNS_ALL_MS or rate_before <= learned_rate) and 1 or learned_rate / rate_before
  meter.recent = math.max(0, meter.recent + proofs)
  meter.usual = math.max(0, meter.usual + proofs * share)
end

-- Adds an accepted proof (`proofs` 1), or takes it back (-1). `accepted` are earlier proofs of the address. The operation `fields` has
-- from byte `start` on, of the site and of each network: | free proofs a minute 3 each | numbers of their meters 2 each |
local function add_proof(fields, start, accepted, proofs)
  local count = (#fields - start + 1) / 5
  if count > 0 then has_proof = true end
  for index = 0, count - 1 do -- 0 is the site, which counts returning addresses alone
    local free = unpack_bytes('>I3', fields, start + 3 * index)
    local number = unpack_bytes('>I2', fields, start + 3 * count + 2 * index)
    if index > 0 then add(number, proofs, NETWORK_RECENT_MS, free, names_age)
    elseif accepted >= RETURNING_PROOFS then add(number, proofs, SITE_RECENT_MS, free, age) end
  end
end

at_end.meters = function()
  for number, meter in pairs(meters) do
    local record = pack(METER, wall, meter.recent, meter.usual)
    values[EPOCH_KEYS + number] = record
    local keep = math.min(KEPT_MS_MAX, KEPT_MS_A_PROOF * math.max(1, meter.usual))
    call('SET', KEYS[EPOCH_KEYS + number], record, 'EX', seconds_text(keep))
  end
  if not has_proof then return end
  for number = 1, 2 do
    local key, renewed, _, born = EPOCH_KEYS + number, 0, 0, wall
    if values[key] then renewed, _, born = unpack_bytes(METER, values[key]) end
    -- The age starts anew if the clock was ahead at the first proof.
    if born > wall or not shares_step(renewed, wall, DAY_MS) then
      values[key] = pack(METER, wall, 0, math.min(born, wall))
      call('SET', KEYS[key], values[key], 'EX', seconds_text(KEPT_MS_MAX))
    end
  end
end
