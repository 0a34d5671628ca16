// Leaves detached processes, one of them without environment.
const { spawn } = require("child_process");
const alone = { detached: true, stdio: "ignore" };
spawn("setsid", ["sleep", "600"], { ...alone, env: { PATH: "/usr/bin:/bin" } }).unref();
spawn("sh", ["-c", "(setsid sleep 600 &) ; exit 0"], alone).unref();
