// Does not listen to polite signals.
for (const name of ["SIGTERM", "SIGINT", "SIGHUP", "SIGUSR2"]) process.on(name, () => {});
setTimeout(() => {}, 150_000);
