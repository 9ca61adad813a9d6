// SPDX-License-Identifier: Apache-2.0

package contract

const (
	aTarget = "target \"harvester\" {\n  driver = \"harvester\"\n}\n"
	aCheck  = "    check \"c\" {\n      query = \"1\"\n      strategy \"fixed-value\" {\n        value = 1\n      }\n    }\n"
	aPolicy = "scaling \"p\" {\n  enabled = true\n  max = 5\n  policy {\n" + aCheck + "    target \"harvester\" {}\n  }\n}\n"
)

// Files of the agent's configuration.
var agentTexts = []string{
	"", "\n", "\ufeff" + aTarget, aTarget + "\ufeff", "# only a comment", aPolicy, "---\ntarget:\n  driver: harvester\n",
	"job \"autoscaler\" {\n  group \"g\" {\n    task \"t\" {\n      driver = \"docker\"\n    }\n  }\n}\n",
	"variable \"x\" {\n  default = 1\n}\n" + aTarget, "locals {\n  a = 1\n}\n" + aTarget, "resource \"a\" \"b\" {\n}\n" + aTarget,
	"log_level = \"verbose\"\n" + aTarget, "log_level = debug\n" + aTarget, "log_level: \"debug\"\n" + aTarget, "log-level = \"debug\"\n" + aTarget,
	"LOG_LEVEL = \"debug\"\n" + aTarget, "log_json = \"yes\"\n" + aTarget, "log_json = 1\n" + aTarget, "enable_debug = on\n" + aTarget,
	"enable_debug = \"on\"\n" + aTarget, "plugin_dir = [\"/a\"]\n" + aTarget, "plugin_dir = \"/a\"\nplugin_dir = \"/b\"\n" + aTarget,
	"plugin_dirs = \"/a\"\n" + aTarget, "plugins = \"/a\"\n" + aTarget, "data_dir = \"/a\"\n" + aTarget, "region = \"global\"\n" + aTarget,
	"http {\n  bind_prot = 8080\n}\n" + aTarget, "http {\n  bind_port = \"8080\"\n}\n" + aTarget, "http {\n  bind_port = \":8080\"\n}\n" + aTarget,
	"http {\n  bind_port = 80800\n}\n" + aTarget, "http {\n  bind_port = -1\n}\n" + aTarget, "http {\n  bind_port = 8080.0\n}\n" + aTarget,
	"http {\n  bind_port = 8080.5\n}\n" + aTarget, "http {\n  bind_address = 0.0.0.0\n}\n" + aTarget, "http {\n  bind_addr = \"0.0.0.0\"\n}\n" + aTarget,
	"http {\n  port = 1\n}\n" + aTarget, "http = {\n  bind_port = 1\n}\n" + aTarget, "http \"x\" {\n}\n" + aTarget, "http {}\nhttp {}\n" + aTarget,
	"http { bind_port = 1, bind_address = \"a\" }\n" + aTarget, "http { bind_port = 1 }\n" + aTarget, "https {\n}\n" + aTarget,
	"http {\n  tls {\n  }\n}\n" + aTarget,
	"telemetry {\n  collection_interval = \"1 second\"\n}\n" + aTarget, "telemetry {\n  collection_interval = 1\n}\n" + aTarget,
	"telemetry {\n  collection_interval = \"0\"\n}\n" + aTarget, "telemetry {\n  collection_interval = \"1s\"\n  collection_interval = \"2s\"\n}\n" + aTarget,
	"telemetry {\n  prometheus_metrics = \"enabled\"\n}\n" + aTarget, "telemetry {\n  prometheus_metric = true\n}\n" + aTarget,
	"telemetry {\n  prometheus_metrics = 1\n}\n" + aTarget, "telemetry {\n  publish_allocation_metrics = true\n}\n" + aTarget,
	"telemetry {\n  prometheus_retention_time = \"24\"\n}\n" + aTarget, "telemetry {\n  prometheus_retention_time = \"1d\"\n}\n" + aTarget,
	"telemetry {\n  dogstatsd_tags = \"a\"\n}\n" + aTarget, "telemetry {\n  dogstatsd_tags = [\"a\", 1]\n}\n" + aTarget,
	"telemetry {\n  statsd_address = [\"a\"]\n}\n" + aTarget, "telemetry {\n  disable_hostname = null\n}\n" + aTarget,
	"policy {\n  default_cooldown = \"5 min\"\n}\n" + aTarget, "policy {\n  default_cooldown = 300\n}\n" + aTarget,
	"policy {\n  default_cooldown = \"-1m\"\n}\n" + aTarget, "policy {\n  default_cooldown = \"1.5h\"\n}\n" + aTarget,
	"policy {\n  default_evaluation_interval = \"10sec\"\n}\n" + aTarget, "policy {\n  evaluation_interval = \"10s\"\n}\n" + aTarget,
	"policy {\n  dir = \"/p\"\n  cooldown = \"1m\"\n}\n" + aTarget, "policy {\n  directory = \"/p\"\n}\n" + aTarget, "policy {\n  dir = [\"/p\"]\n}\n" + aTarget,
	"policy {\n  source \"file\" {\n  }\n}\n" + aTarget, "policy {\n  source \"file\" {\n    enabled = false\n  }\n}\n" + aTarget,
	"policy {\n  source \"nomad\" {\n    enabled = false\n  }\n}\n" + aTarget, "policy {\n  source \"consul\" {\n  }\n}\n" + aTarget,
	"policy {\n  source {\n    enabled = true\n  }\n}\n" + aTarget, "policy {\n  source \"file\" {\n    enable = true\n  }\n}\n" + aTarget,
	"policy {\n  sources = [\"file\"]\n}\n" + aTarget, "policy \"p\" {\n}\n" + aTarget, "policy_dir = \"/p\"\n" + aTarget,
	"policy_eval {\n  delivery_limit = 0\n}\n" + aTarget, "policy_eval {\n  delivery_limit = \"3\"\n}\n" + aTarget,
	"policy_eval {\n  ack_timeout = \"5\"\n}\n" + aTarget, "policy_eval {\n  workers = 10\n}\n" + aTarget,
	"policy_eval {\n  workers = { cluster = 10, horizontal = 2 }\n}\n" + aTarget, "policy_eval {\n  workers = { cluster = -1 }\n}\n" + aTarget,
	"policy_eval {\n  workers = { cluster = \"ten\" }\n}\n" + aTarget, "policy_eval {\n  workers {\n    cluster = 10\n  }\n}\n" + aTarget,
	"policy_workers {\n}\n" + aTarget,
	"high_availability {\n}\n" + aTarget, "high_availability {\n  enabled = true\n}\n" + aTarget, "high_availability {\n  enabled = \"on\"\n}\n" + aTarget,
	"high_availability {\n  enabled = true\n  lock_ttl = 30\n}\n" + aTarget, "high_availability {\n  enabled = true\n  lock_ttl = \"30s\"\n}\n" + aTarget,
	"high_availability {\n  enabled = true\n  lock_dely = \"30s\"\n}\n" + aTarget, "high_availability {\n  enabled = true\n  ttl = \"30s\"\n}\n" + aTarget,
	"high_availability = true\n" + aTarget, "ha {\n  enabled = true\n}\n" + aTarget,
	"dynamic_application_sizing {\n}\n" + aTarget, "dynamic_application_sizing {\n  evaluate_after = \"24h\"\n}\n" + aTarget,
	"nomad {\n  address = \"http://n:4646\"\n  tls {\n    ca_file = \"x\"\n  }\n}\n" + aTarget, "nomad {\n  skip_verify = 1\n}\n" + aTarget,
	"nomad {\n  skip_verify = \"1\"\n}\n" + aTarget, "nomad {\n  skip_verify = \"\"\n}\n" + aTarget, "nomad {\n  addres = \"x\"\n}\n" + aTarget,
	"nomad {\n  ca_file = \"x\"\n}\n" + aTarget, "nomad {\n  namespaces = [\"a\"]\n}\n" + aTarget, "nomad {\n  namespace = \"a\"\n}\n" + aTarget,
	"nomad {\n  namespace = [\"a\", \"b\"]\n}\n" + aTarget, "nomad {\n  namespace = 5\n}\n" + aTarget, "nomad {\n  token = null\n}\n" + aTarget,
	"nomad {\n  token_file = \"x\"\n}\n" + aTarget, "nomad {\n  block_query_wait_time = \"5min\"\n}\n" + aTarget,
	"nomad {\n  address = \"{{ env \"a\" }}\"\n}\n" + aTarget, "nomad {\n  address = \"${NOMAD_ADDR}\"\n}\n" + aTarget,
	"apm \"prometheus\" {\n  driver = \"prometheus\"\n  config = {\n    address = \"http://p\"\n  }\n}\n" + aTarget,
	"apm \"prometheus\" {\n  drivr = \"prometheus\"\n}\n" + aTarget, "apm {\n  driver = \"prometheus\"\n}\n" + aTarget,
	"apm \"prometheus\" {\n  driver = \"prometheus\"\n  config {\n    address = \"http://p\"\n  }\n}\n" + aTarget,
	"apms \"prometheus\" {\n  driver = \"prometheus\"\n}\n" + aTarget, "strategy \"s\" {\n}\n" + aTarget,
	"strategy \"s\" {\n  driver = \"s\"\n  value = 1\n}\n" + aTarget,
	"target \"a\" {\n  driver = \"harvester\"\n  args = \"-x\"\n}\n", "target \"a\" {\n  driver = \"harvester\"\n  args = [\"-x\", 1]\n}\n",
	"target \"a\" {\n  driver = \"harvester\"\n  args = [[\"-x\"]]\n}\n", "target \"a\" {\n  driver = \"harvester\"\n  config = [\"a\"]\n}\n",
	"target \"a\" {\n  driver = \"harvester\"\n  config = { a = [1] }\n}\n", "target \"a\" {\n  driver = \"harvester\"\n  config = { a = { b = 1 } }\n}\n",
	"target \"a\" {\n  driver = [\"harvester\"]\n}\n", "target \"a\" {\n  driver = \"harvester\"\n  harvester_url = \"x\"\n}\n",
	"target \"a\" {\n  plugin = \"harvester\"\n}\n", "target a {\n  driver = \"harvester\"\n}\n", "target \"a\" \"b\" {\n  driver = \"harvester\"\n}\n",
	"target \"a\" {\n  driver = 'harvester'\n}\n", "target \"a\" {\n  driver: \"harvester\"\n}\n", "targets \"a\" {\n  driver = \"harvester\"\n}\n",
	"target = \"harvester\"\n", "target \"a\" {\n  driver = \"harvester\";\n}\n", "target \"a\" {\n  driver = \"harvester\"\n  config = {\n    a = 1\n    a = 2\n  }\n}\n",
	aTarget + aTarget, "target \"a\"\n{\n  driver = \"harvester\"\n}\n", aTarget[:len(aTarget)-2], aTarget + "}\n", "scaling = 1\n" + aTarget,
	"{\n  \"target\": {}\n}\n", "include \"x.hcl\"\n" + aTarget, "import = \"x\"\n" + aTarget, "consul {\n}\n" + aTarget, "vault {\n}\n" + aTarget,
}

var agentJSON = []string{
	`{}`, `[]`, `[{}]`, `null`, "\ufeff{}", `{"http": {"bind_prot": 1}}`, `{"http": {"bind_port": "80"}}`, `{"http": [{"bind_port": 1}]}`,
	`{"http": [{"bind_port": 1}, {"bind_port": 2}]}`, `{"http": null}`, `{"http": true}`, `{"log_json": "yes"}`, `{"log_json": 1}`, `{"job": {"x": {}}}`,
	`{"telemetry": {"collection_interval": "1 second"}}`, `{"target": {"harvester": {"driver": "harvester", "args": "x"}}}`,
	`{"target": {"harvester": {"driver": "harvester", "args": ["x"]}}}`, `{"target": {"harvester": {"driver": "harvester", "config": {"a": [1]}}}}`,
	`{"target": [{"a": {"driver": "harvester"}}, {"b": {"driver": "harvester"}}]}`, `{"target": {"harvester": {}}}`, `{"quantum_foam": 1}`,
	`{"nomad": {"namespace": ["a", "b"]}}`, `{"nomad": {"namespace": "a"}}`, `{"nomad": {"skip_verify": 1}}`,
	`{"policy": {"source": {"consul": {}}}}`, `{"high_availability": {}}`, `{"dynamic_application_sizing": {}}`, `{"Target": {}}`,
}

// Whole files of policies.
var policyTexts = []string{
	"", aPolicy, "\ufeff" + aPolicy, aPolicy + aPolicy, aTarget, "policy {\n}\n", "scaling {\n  max = 5\n}\n", "scaling \"p\" {\n}\n",
	"scaling \"p\" {\n  max = 5\n}\n", "scaling \"p\" {\n  enabled = true\n  max = 5\n}\n", "scaling \"p\" {\n  max = 5\n  policy {\n  }\n}\n",
	"scaling \"p\" {\n  enabled = true\n  max = 5\n  policy {\n" + aCheck + "  }\n}\n", "scaling \"p\" {\n  enabled = true\n  max = 5\n  policy {\n    target \"h\" {}\n  }\n}\n",
	"scaling \"p\" {\n  enabled = true\n  max = 5\n  policy {\n    target \"h\" {}\n    target \"h\" {}\n" + aCheck + "  }\n}\n",
	"scaling \"p\" {\n  enabled = true\n  max = 5\n  policy {\n    target {}\n" + aCheck + "  }\n}\n",
	"scaling \"p\" {\n  enabled = true\n  max = 5\n  policy {\n    target \"h\" {\n      dry-run = true\n      a = [1]\n    }\n" + aCheck + "  }\n}\n",
	"scaling \"p\" {\n  enabled = true\n  max = 5\n  policy {\n    target \"h\" {\n      config = { a = 1 }\n    }\n" + aCheck + "  }\n}\n",
	"scaling \"p\" {\n  enabled = true\n  max = 5\n  policy {\n    target \"h\" {\n      a = null\n    }\n" + aCheck + "  }\n}\n",
	"scaling \"p\" {\n  enabled = yes\n  max = 5\n  policy {\n  }\n}\n", "job \"x\" {\n  group \"g\" {\n    scaling {\n    }\n  }\n}\n",
	"scaling \"p\" {\n  enabled = true\n  max = 5\n  target \"h\" {}\n  policy {\n" + aCheck + "  }\n}\n",
	"scaling \"p\" \"q\" {\n  enabled = true\n  max = 5\n}\n", "scaling \"\" {\n  max = 5\n  policy {\n    target \"h\" {}\n  }\n}\n",
	"scaling \"p\" {\n  enabled = true\n  min = 6\n  max = 5\n  policy {\n    target \"h\" {}\n" + aCheck + "  }\n}\n",
	"scaling \"p\" {\n  enabled = true\n  min = -1\n  max = 5\n  policy {\n    target \"h\" {}\n" + aCheck + "  }\n}\n",
	"scaling \"p\" {\n  enabled = false\n  min = 6\n  max = 5\n  policy {\n    target \"h\" {}\n  }\n}\n",
	"scaling \"p\" {\n  enabled = true\n  type = \"clustre\"\n  max = 5\n  policy {\n    target \"h\" {}\n" + aCheck + "  }\n}\n",
	"scaling \"p\" {\n  enabled = true\n  type = \"horizontal\"\n  max = 5\n  policy {\n    target \"h\" {}\n" + aCheck + "  }\n}\n",
	"scaling \"p\" {\n  enabled = true\n  max = 5\n  cooldown = \"1m\"\n  policy {\n    target \"h\" {}\n" + aCheck + "  }\n}\n",
	"scaling \"p\" {\n  enabled = true\n  maximum = 5\n  policy {\n    target \"h\" {}\n" + aCheck + "  }\n}\n",
	"scaling \"p\" {\n  enabled = true\n  max = 5\n  count = 3\n  policy {\n    target \"h\" {}\n" + aCheck + "  }\n}\n",
	"scaling \"p\" {\n  enabled = true\n  max = 5\n  policy {\n    target \"h\" {}\n" + aCheck + "  }\n  policy {\n  }\n}\n",
}

// Pieces of a block policy that has a check and a target.
var inPolicies = []string{
	"    cooldown = \"1m\"\n", "    cooldown = 60\n", "    cooldown = \"1 minute\"\n", "    cooldown = \"\"\n", "    cooldown = null\n", "    coldown = \"1m\"\n",
	"    evaluation_interval = \"10\"\n", "    evaluation_interval = \"10s\"\n", "    interval = \"10s\"\n", "    cooldown_on_scale_up = \"5\"\n",
	"    on_check_error = \"stop\"\n", "    on_check_error = \"fail\"\n", "    on_error = \"fail\"\n", "    query = \"1\"\n", "    strategy \"x\" {}\n",
	"    schedule {\n    }\n", "    schedule {\n      start = \"0 7 * * *\"\n    }\n", "    schedule {\n      end = \"0 7 * * *\"\n    }\n",
	"    schedule {\n      start = \"0 7 * * *\"\n      end = \"0 8 * * *\"\n      duration = \"1h\"\n    }\n", "    schedule {\n      start = \"\"\n      duration = \"1h\"\n    }\n",
	"    schedule {\n      start = \"0 7 * * *\"\n      duration = \"12 hours\"\n    }\n", "    schedule {\n      start = \"0 7 * * *\"\n      duration = \"0s\"\n    }\n",
	"    schedule {\n      start = \"0 7 * * *\"\n      duration = \"-1h\"\n    }\n", "    schedule {\n      start = \"0 7 * * *\"\n      stop = \"0 8 * * *\"\n    }\n",
	"    schedule {\n      cron = \"0 7 * * *\"\n      duration = \"1h\"\n    }\n", "    schedule = \"0 7 * * *\"\n", "    schedule \"x\" {\n      start = \"0 7 * * *\"\n      duration = \"1h\"\n    }\n",
	"    schedule {\n      start = \"0 7 * * *\"\n      duration = \"1h\"\n    }\n    schedule {\n      start = \"0 7 * * *\"\n      duration = \"1h\"\n    }\n",
	"    check \"d\" {\n      sorce = \"x\"\n      strategy \"pass-through\" {}\n    }\n", "    check \"d\" {\n    }\n", "    check {\n      strategy \"pass-through\" {}\n    }\n",
	"    check \"d\" {\n      strategy \"pass-through\" {\n        config = { value = 1 }\n      }\n    }\n", "    check \"d\" {\n      strategy {\n      }\n    }\n",
	"    check \"d\" {\n      strategy \"\" {\n      }\n    }\n", "    check \"d\" {\n      strategy = \"pass-through\"\n    }\n",
	"    check \"d\" {\n      strategy \"a\" {}\n      strategy \"b\" {}\n    }\n", "    check \"d\" {\n      strategy \"target-value\" {\n        target = [1]\n      }\n    }\n",
	"    check \"d\" {\n      strategy \"threshold\" {\n        block {\n        }\n      }\n    }\n", "    check \"d\" {\n      strategy \"app-sizing-max\" {}\n    }\n",
	"    check \"d\" {\n      query_window = \"5\"\n      strategy \"x\" {}\n    }\n", "    check \"d\" {\n      query_window = 300\n      strategy \"x\" {}\n    }\n",
	"    check \"d\" {\n      query_window = \"instant\"\n      strategy \"x\" {}\n    }\n", "    check \"d\" {\n      query_window = \"Instant\"\n      strategy \"x\" {}\n    }\n",
	"    check \"d\" {\n      query_window = \"instant\"\n      strategy \"threshold\" {}\n    }\n",
	"    check \"d\" {\n      query_window = \"instant\"\n      strategy \"threshold\" {\n        within_bounds_trigger = 1\n      }\n    }\n",
	"    check \"d\" {\n      query_window = \"instant\"\n      strategy \"threshold\" {\n        within_bounds_trigger = \"2\"\n      }\n    }\n",
	"    check \"d\" {\n      query_window_offset = \"1d\"\n      strategy \"x\" {}\n    }\n", "    check \"d\" {\n      on_error = \"warn\"\n      strategy \"x\" {}\n    }\n",
	"    check \"d\" {\n      query = <<EOF\nsum(x)\nEOF\n      strategy \"x\" {}\n    }\n", "    check \"d\" {\n      query = [\"x\"]\n      strategy \"x\" {}\n    }\n",
	"    check \"d\" {\n      group = 5\n      strategy \"x\" {}\n    }\n", "    checks \"d\" {\n      strategy \"x\" {}\n    }\n",
	"    check \"d\" {\n      target \"h\" {}\n      strategy \"x\" {}\n    }\n", "    check \"d\" {\n      interval = \"1m\"\n      strategy \"x\" {}\n    }\n",
}

// Cron expressions, right and wrong.
var crons = []string{
	"0 7 * * *", "*/5 * * * *", "0 7 * * 1-5", "0 7 * * mon-fri", "0 7 * * MON", "0 7 * * Monday", "0 7 1 jan *", "0 7 1 January *", "0 7 * * 7", "0 7 * * 8",
	"0 7 * * 0-7", "0 24 * * *", "60 7 * * *", "59 23 31 12 6", "00 07 01 01 00", "000 7 * * *", "0 7 0 * *", "0 7 32 * *", "0 7 * 0 *", "0 7 * 13 *",
	"0 7 L * *", "0 7 LW * *", "0 7 15W * *", "0 7 32W * *", "0 7 w * *", "0 7 * * 5L", "0 7 * * L", "0 7 * * friL", "0 7 * * 5#3", "0 7 * * 5#6", "0 7 * * #3",
	"0 7 ? * ?", "? ? ? ? ?", "0,30 7 * * *", "0,,30 7 * * *", ",0 7 * * *", ", 7 * * *", "0,60 7 * * *", "0-30 7 * * *", "30-0 7 * * *", "0 22-6 * * *", "0 7 * * fri-mon", "0 7 * * sat-sun", "0 7 * 11-2 *", "0- 7 * * *",
	"-5 7 * * *", "0-30/5 7 * * *", "0/15 7 * * *", "*/0 7 * * *", "*/59 7 * * *", "*/60 7 * * *", "*/7 */23 */31 */12 */6", "0 */24 * * *", "0 7 */32 * *",
	"0 7 * */13 *", "0 7 * * */7", "*/05 7 * * *", "*/ 7 * * *", "*/x 7 * * *", "*-5 7 * * *", "**/5 7 * * *", "*5 7 * * *", "every day", "daily", "@daily", "@hourly",
	"7:00", "0 7 * *", "0 0 7 * * *", "0 0 7 * * * *", "0  7\t* * *", " 0 7 * * * ", "0 7 * * * # morning", "0 7 * * 1,2,3", "0 7 * * mon,tue", "0 7 * * mo", "0 7 * jan-mar *",
	"0 7 * * 1-", "0 7 * * monday-friday", "0 7am * * *", "0 7.5 * * *", "+5 7 * * *", "0 7 * * *;", "H 7 * * *", "TZ=UTC 0 7 * *", "0 7 * * 1/2", "0 7 5,L * *", "0 7 L-3 * *",
}
