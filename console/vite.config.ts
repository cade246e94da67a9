import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { brotliCompressSync, constants, gzipSync } from 'node:zlib'
import react from '@vitejs/plugin-react'
import { defineConfig, type Plugin } from 'vite'

/** Writes each text file a second and third time, compressed, so that the server compresses nothing. */
function precompress(): Plugin {
  let directory = ''

  return {
    name: 'precompress',
    apply: 'build',
    configResolved(config) {
      directory = config.build.outDir
    },
    async closeBundle() {
      for (const entry of await readdir(directory, { recursive: true, withFileTypes: true })) {
        if (!entry.isFile() || !/\.(js|css|svg|html)$/.test(entry.name)) continue

        const path = join(entry.parentPath, entry.name)
        const bytes = await readFile(path)
        const quality = { [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY }
        await writeFile(`${path}.br`, brotliCompressSync(bytes, { params: quality }))
        await writeFile(`${path}.gz`, gzipSync(bytes, { level: 9 }))
      }
    },
  }
}

const server = process.env.SOCLE_URL ?? 'http://127.0.0.1:8080'

export default defineConfig({
  base: '/console/',
  plugins: [react(), precompress()],
  build: {
    target: 'es2022',
    assetsInlineLimit: 0, // the policy allows no data: script or style
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
  server: {
    proxy: {
      '^/(?!console/|console$)': { target: server, changeOrigin: true },
      '/console/session': { target: server, changeOrigin: true },
    },
  },
})
