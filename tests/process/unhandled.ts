// Preloaded into a server: errors that nobody handles, as code of an adopter may have, one for each signal.
Deno.addSignalListener("SIGUSR1", () => {
  setTimeout(() => {
    throw new TypeError("data of a client");
  });
});
Deno.addSignalListener("SIGUSR2", () => {
  Promise.reject(new TypeError("data of a client"));
});
