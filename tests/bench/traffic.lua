-- wrk script: -- METHOD BODY PATHS KEY...
-- PATHS are separated by spaces. Sends paths and keys round robin; at the end prints one line of JSON.

local requests = {}

function init(args)
  wrk.method = args[1]
  if args[2] ~= "" then
    wrk.body = args[2]
    wrk.headers["Content-Type"] = "application/json"
  end
  local paths = {}
  for path in args[3]:gmatch("%S+") do
    paths[#paths + 1] = path
  end
  local keys = { unpack(args, 4) }
  for index = 1, math.max(#paths, #keys) do
    wrk.headers["Authorization"] = "Bearer " .. keys[(index - 1) % #keys + 1]
    requests[index] = wrk.format(nil, paths[(index - 1) % #paths + 1])
  end
end

local turn = 0
function request()
  turn = turn % #requests + 1
  return requests[turn]
end

function done(summary, latency)
  local errors = summary.errors
  io.write(string.format(
    '{"requests":%d,"microseconds":%d,"failures":%d,"broken":%d,"p50":%d,"p99":%d}\n',
    summary.requests,
    summary.duration,
    errors.status,
    errors.connect + errors.read + errors.write + errors.timeout,
    latency:percentile(50),
    latency:percentile(99)
  ))
end
