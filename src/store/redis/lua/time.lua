-- `wall`: the time of this call, Unix milliseconds.
-- ARGV[1]  '' for this server's clock, or a time (tests)
local wall = tonumber(ARGV[1])
if not wall then
  local time = redis.call('TIME')
  wall = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end
