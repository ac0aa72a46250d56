// If a test fails and then its harness, too, the report shows the failure of the test as the cause.
Object.defineProperty(SuppressedError.prototype, "cause", {
  get(this: SuppressedError): unknown {
    return this.suppressed;
  },
});
