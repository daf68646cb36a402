/**
 * How connections are made that are not the pool's: with what the pool makes its own, or what a URL says. Some of it a
 * pool hides from enumeration, and some is for pools only, so each field is taken by its name.
 */
import type { Client, ClientConfig } from 'pg'

/** Makes a connection, not open yet, beside the pool: as the pool does but for what is given. */
export type ClientFactory = (but: ClientConfig) => Client

/** Databases are told whose connection it is, unless the user calls it something. */
const APPLICATION = 'perdure'

export function clientConfig(options: ClientConfig): ClientConfig {
  return {
    user: options.user,
    database: options.database,
    password: options.password,
    port: options.port,
    host: options.host,
    connectionString: options.connectionString,
    ...(options.stream === undefined ? {} : { stream: options.stream }),
    ssl: withKey(options.ssl),
    sslnegotiation: options.sslnegotiation,
    enableChannelBinding: options.enableChannelBinding,
    options: options.options,
    client_encoding: options.client_encoding,
    application_name: options.application_name,
    fallback_application_name: options.fallback_application_name ?? APPLICATION,
    // These are few and live long: a peer that is gone without a word must be noticed.
    keepAlive: true,
    keepAliveInitialDelayMillis: options.keepAliveInitialDelayMillis,
  }
}

/** `pg` hides the private key as well. */
function withKey(ssl: ClientConfig['ssl']): ClientConfig['ssl'] {
  return typeof ssl === 'object' && ssl.key !== undefined ? { ...ssl, key: ssl.key } : ssl
}

/** The same for another thread; null: something of it can't be taken there, such as a function that gives the password. */
export function clonedConfig(config: ClientConfig): ClientConfig | null {
  try {
    return structuredClone(config)
  } catch {
    return null
  }
}
