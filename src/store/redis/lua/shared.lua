-- What all operations use: the call's head, the values of its keys, times compared as domain/limits.ts does, and the answers.
-- scripts.ts joins the files into one script, so each uses locals of those before it, and lists them. An operation's file name ends
-- with the number of kinds of keys that its header lists under KEYS; there, a number after a field is its size in bytes. Whoever changes
-- an operation changes it in client/requests.ts, which writes its ARGV and reads its answer, and in embedded/engine.ts.
-- From time.lua: wall
local call, pack, unpack_bytes = redis.call, struct.pack, struct.unpack -- looked up once a batch

-- The head of the call; store/wire.ts has its form, and epoch.lua says what its times and numbers are for.
local next_epoch, checked_at, expected, expecting_epoch, seen, meter_count = unpack_bytes('>I4I4I4I4dI2', ARGV[2])
-- The domain has numbers by the same names: test/store/lua-constants.test.ts compares a line with the file that its comment names.
local WINDOW_MS, WRAP, HALF_WRAP, COUNT_MAX, EXACT_LIMIT_MAX = 60000, 16777216, 8388608, 65535, 256 -- domain/limits.ts
local NO_TIME, SLOT_MOVED = 4294967295, 4294967294 -- in place of a time, as in store/wire.ts
-- The policy of an answer, which is the limit that refused, and what is added for a limit of junk: POLICIES in store/wire.ts
local ADDRESS, ADDRESS_SITE, API_KEY, JUNK = 1, 2, 3, 4

local values = call('MGET', unpack(KEYS)) -- by a key's number, its position in KEYS; one MGET takes 0.4 us a key, a GET 1.3
local written = {} -- by key: what operations of this batch wrote takes precedence over `values`
local function value_of(number)
  return written[KEYS[number]] or values[number] or ''
end

local now = wall % WRAP
local EPOCH_KEYS = 3 -- KEYS of epoch.lua; the keys of meters follow, so meter 1 is key 4
local operations = {} -- by the letter's code: (number of its first key, its text) -> number of the next operation's first key
local at_end = {} -- functions that write what the operations counted

-- The time now, or the last entry's if the clock stepped back: modulo WRAP, that shows as a difference above HALF_WRAP.
local function held_time(last)
  if (now - last) % WRAP > HALF_WRAP then return last end
  return now
end

-- The text for EX. Converting a number takes Redis 0.15 us of the 0.9 us of a SET, so each is converted once a batch.
local texts_of_seconds = {}
local function seconds_text(milliseconds)
  local seconds = math.ceil(milliseconds / 1000)
  local text = texts_of_seconds[seconds]
  if not text then
    text = string.format('%d', seconds)
    texts_of_seconds[seconds] = text
  end
  return text
end

-- Above EXACT_LIMIT_MAX, requests of one step share an entry (domain/limits.ts).
local function step_ms(limit)
  if limit <= EXACT_LIMIT_MAX then return 1 end
  return math.ceil(WINDOW_MS / EXACT_LIMIT_MAX)
end

local function shares_step(entry_time, time, step)
  return entry_time - entry_time % step == time - time % step
end

local answers, answered = {}, 0
local has_used = false -- whether this batch has spent a nonce or redeemed a token

local function answer(status, first, second) -- three numbers, as the operation's header tells
  answers[answered + 1] = status
  answers[answered + 2] = first
  answers[answered + 3] = second
  answered = answered + 3
end
