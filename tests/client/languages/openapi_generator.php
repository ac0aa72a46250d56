<?php
require "GuzzleHttp/autoload.php";
spl_autoload_register(function ($class) {
    [$package, $rest] = explode("\\", $class, 2);
    $file = __DIR__ . "/" . $package . "/lib/" . strtr($rest, "\\", "/") . ".php";
    if (file_exists($file)) require $file;
});

$origin = getenv("ORIGIN");
$configuration = (new clients\Configuration())->setHost("$origin/v1");
$me = (new clients\Api\AccountApi(null, $configuration))->createAccount(
    new clients\Model\AccountCreation(["name" => "Élan"])
);
$configuration->setAccessToken($me->getApiKey());
$animals = new clients\Api\AnimalsApi(null, $configuration);
$pet = $animals->createPet(new clients\Model\PetCreation(["name" => "Élan", "category_id" => 1 << 62]));
$change = (new clients\Model\PetPatch())->setStatus(clients\Model\PetStatus::SOLD);
$animals->updatePet($pet->getId(), $change);
foreach ($animals->listPets() as $pet) {
    echo "{$pet->getName()} {$pet->getCategoryId()} {$pet->getStatus()}\n";
}
try {
    $animals->createPet(new clients\Model\PetCreation(["name" => "\u{85}", "category_id" => 1]));
} catch (clients\ApiException $refused) {
    $error = $refused->getResponseObject();
    echo "{$error->getCode()} {$error->getField()}\n";
}
foreach ((new clients\Api\SpecimensApi(null, $configuration))->listSpecimens() as $specimen) {
    echo "{$specimen->getTextPlain()} ", $specimen->getLongNullable() ?? "null", "\n";
}

$desk = (new operators\Configuration())->setHost("$origin/operator/v1");
$desk->setAccessToken(getenv("OPERATOR_TOKEN"));
$accounts = new operators\Api\AccountsApi(null, $desk);
$accounts->createAccount(new operators\Model\AccountCreation(["name" => "Élan"]));
foreach ($accounts->listAccounts() as $account) echo "{$account->getName()} {$account->getPlan()}\n";
