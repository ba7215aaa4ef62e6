-- KEYS[1] a session; ARGV[1] its new value, ARGV[2] the lifetime in milliseconds or 0 to keep it, and
-- ARGV[3] the owner that it must have now.
local value = redis.call('GET', KEYS[1])
if not value then
  return -1
end
local record = cjson.decode(string.sub(value, string.find(value, ' ', 1, true) + 1))
if (record.Owner or '') ~= ARGV[3] then
  return 0
end
if ARGV[2] == '0' then
  redis.call('SET', KEYS[1], ARGV[1], 'KEEPTTL')
else
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
end
return 1
