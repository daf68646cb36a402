/** A logger for children: the test tells what is wrong, from what it counts. */
import type { Logger } from '../../src/index.ts'

export const quiet: Logger = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} }
