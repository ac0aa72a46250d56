%w[clients operators].each { |name| $LOAD_PATH << "#{__dir__}/#{name}/lib" }
require "clients"
require "operators"
require "json"
require "uri"

# A client of this module for the service at this URL.
def client(of, url, token)
  configuration = of::Configuration.new do |its|
    its.scheme, its.host, its.base_path = URI(url).then { |uri| [uri.scheme, "#{uri.host}:#{uri.port}", uri.path] }
    its.server_index = nil
    its.access_token = token
  end
  of::ApiClient.new(configuration)
end

origin = ENV.fetch("ORIGIN")
anyone = client(Clients, "#{origin}/v1", nil)
me = Clients::AccountApi.new(anyone).create_account(Clients::AccountCreation.new(name: "Élan"))
animals = Clients::AnimalsApi.new(client(Clients, "#{origin}/v1", me.api_key))
pet = animals.create_pet(Clients::PetCreation.new(name: "Élan", category_id: 1 << 62))
animals.update_pet(pet.id, Clients::PetPatch.new(status: Clients::PetStatus::SOLD))
animals.list_pets.each { |one| puts "#{one.name} #{one.category_id} #{one.status}" }
begin
  animals.create_pet(Clients::PetCreation.new(name: "\u0085", category_id: 1))
rescue Clients::ApiError => e
  error = Clients::Error.build_from_hash(JSON.parse(e.response_body, symbolize_names: true))
  puts "#{error.code} #{error.field}"
end
specimens = Clients::SpecimensApi.new(animals.api_client).list_specimens
specimens.each { |one| puts "#{one.text_plain} #{one.long_nullable || "null"}" }

operator = client(Operators, "#{origin}/operator/v1", ENV.fetch("OPERATOR_TOKEN"))
accounts = Operators::AccountsApi.new(operator)
accounts.create_account(Operators::AccountCreation.new(name: "Élan"))
accounts.list_accounts.each { |one| puts "#{one.name} #{one.plan}" }
