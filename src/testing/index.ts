/** The entry `perdure/testing`: a clock that tests move, and the kit that authors of stores hold theirs against. */
export { type ConformanceOptions, storeConformance } from '../store/conformance/index.ts'
export { MockClock } from './mock-clock.ts'
