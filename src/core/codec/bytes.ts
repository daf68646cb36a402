/**
 * Binary values. Only the bytes that a view shows are stored, never the rest of its buffer: small Buffers are cut
 * from a pool that they share with whatever else the process reads. So two views of one buffer come back with a
 * buffer each.
 */
import { Stored } from './stored.ts'

const MAKERS: ReadonlyMap<unknown, (bytes: ArrayBuffer) => object> = new Map<unknown, (bytes: ArrayBuffer) => object>([
  ['ArrayBuffer', (bytes) => bytes],
  ['Buffer', (bytes) => Buffer.from(bytes)],
  ['DataView', (bytes) => new DataView(bytes)],
  ['Uint8Array', (bytes) => new Uint8Array(bytes)],
  ['Uint8ClampedArray', (bytes) => new Uint8ClampedArray(bytes)],
  ['Int8Array', (bytes) => new Int8Array(bytes)],
  ['Uint16Array', (bytes) => new Uint16Array(bytes)],
  ['Int16Array', (bytes) => new Int16Array(bytes)],
  ['Uint32Array', (bytes) => new Uint32Array(bytes)],
  ['Int32Array', (bytes) => new Int32Array(bytes)],
  ['Float32Array', (bytes) => new Float32Array(bytes)],
  ['Float64Array', (bytes) => new Float64Array(bytes)],
  ['BigInt64Array', (bytes) => new BigInt64Array(bytes)],
  ['BigUint64Array', (bytes) => new BigUint64Array(bytes)],
])

/** undefined: not binary, or a subclass of its own. */
export function lowerBytes(value: object, className: string): Stored | undefined {
  if (!MAKERS.has(className)) return undefined
  if (value instanceof ArrayBuffer) return stored(className, new Uint8Array(value))
  if (ArrayBuffer.isView(value))
    return stored(className, new Uint8Array(value.buffer, value.byteOffset, value.byteLength))
  return undefined
}

function stored(className: string, bytes: Uint8Array): Stored {
  return new Stored('bytes', [className, Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('base64')])
}

export function raiseBytes(className: unknown, base64: unknown): object {
  const make = MAKERS.get(className)
  if (make === undefined || typeof base64 !== 'string') throw new TypeError('binary data of an unknown kind')
  return make(new Uint8Array(Buffer.from(base64, 'base64')).buffer)
}
