/** Sets the clock of a process wrong, before anything else runs in it: `--import shift-clock.js?<milliseconds>`. */
const RealDate = Date
const shiftMs = Number(new URL(import.meta.url).search.slice(1))

globalThis.Date = new Proxy(RealDate, {
  construct: (target, args, self) => Reflect.construct(target, args.length === 0 ? [shiftedNow()] : args, self),
  apply: () => new RealDate(shiftedNow()).toString(),
  get: (target, key) => (key === 'now' ? shiftedNow : Reflect.get(target, key)),
})

function shiftedNow() {
  return RealDate.now() + shiftMs
}
